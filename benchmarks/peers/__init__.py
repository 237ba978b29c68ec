"""The sides of training.py, a file each: `rounds(work, meter)` trains with one library and tells the meter after each part of a round."""
