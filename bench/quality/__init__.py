"""How good the text is: public data sets, next lines and faults."""
