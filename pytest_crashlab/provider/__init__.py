"""What the target calls: bindings to models, a truthful record of every call, and what errors mean."""
