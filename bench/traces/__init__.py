"""What a person does in an editor, as data, and how it is replayed."""
