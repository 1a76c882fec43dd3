; What stands at the top, if it is more than one value.
(document (object (pair
  key: (string (string_content) @name) value: [(object) (array)]) @function))
(document (array [(object) (array)] @function))
