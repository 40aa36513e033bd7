"""How standing wishes are found in what people write: sentences, cues, weights."""
