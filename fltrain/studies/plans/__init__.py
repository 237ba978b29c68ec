"""What a plan says, word by word, and what each of its cells asks for. Needs no torch."""
