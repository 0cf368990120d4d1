"""From a run or a comparison to views, and from views to text."""
