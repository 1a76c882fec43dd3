; Functions of other scripts are called like commands.
(command name: (command_name (word) @import))
