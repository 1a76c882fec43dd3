"""Who owns which block and what may go: integers and hashes only."""
