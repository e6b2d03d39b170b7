"""boardlift: a model goes in, a proven, measured model for the robot's board comes out."""
