"""What workers do, and whoever starts them: cells are trained, searches decided."""
