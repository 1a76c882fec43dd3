; A function nested in another one belongs to it; the cutting rule sees to that.
(function_definition name: (_) @name) @function
(class_definition name: (_) @name) @class
