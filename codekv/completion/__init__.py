"""What a completion is: prompt, answer, silence."""
