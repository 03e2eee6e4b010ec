"""Producer ids' runs and markers in offset order: sequences, epochs, and the state they lead to."""
