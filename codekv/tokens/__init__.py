"""Tokenizers and what is derived from their vocabularies."""
