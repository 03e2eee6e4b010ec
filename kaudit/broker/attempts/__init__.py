"""What a broker was asked: the attempts format."""
