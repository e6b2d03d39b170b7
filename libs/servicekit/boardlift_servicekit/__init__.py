"""What every boardlift server needs."""
