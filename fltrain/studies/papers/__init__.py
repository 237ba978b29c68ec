"""The studies of papers: plans that come with the package, and the numbers that papers print."""
