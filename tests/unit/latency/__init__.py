"""How long records took to the sink: the parts that the property leaves out."""
