"""Features as a party sees them: transforms, one party's examples, distances between parties."""
