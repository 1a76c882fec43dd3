"""One file per protocol feature; handlers translate and return."""
