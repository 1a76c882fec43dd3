"""From a document and a cursor to the prompt: window, layout, healing and planning."""
