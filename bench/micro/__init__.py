"""One small measurement per file; each ends with one line of JSON."""
