"""One module per command or group; each is imported only when it is called."""
