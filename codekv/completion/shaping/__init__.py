"""From decoded bytes to the text that is offered: every rule about text lives here."""
