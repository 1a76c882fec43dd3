; Names that come from other packages, and classes of the same one.
(import (qualified_identifier (identifier) @import .))
(user_type (identifier) @import)
