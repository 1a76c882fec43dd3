; Whatever was required is known everywhere; classes are what is looked for.
(superclass (constant) @import)
(superclass (scope_resolution name: (constant) @import))
(call receiver: (constant) @import)
(call receiver: (scope_resolution name: (constant) @import))
