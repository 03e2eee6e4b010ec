"""What every parser must survive: random bytes, and real bytes with a few of them changed."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kaudit.formats.errors import WireError

quick = settings(max_examples=150, deadline=5000, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def damaged(draw, samples):
    """Bytes of one sample, cut, flipped, doubled or with a hole; or no sample at all."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=400))
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "hole"])):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "set" if data:
                data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=12))
            case _:
                data[at : at + 8] = bytes(len(data[at : at + 8]))
    return bytes(data)


def outcome(parse, *args):
    """(result, None) or (None, the WireError); any other exception is the test's failure."""
    try:
        return parse(*args), None
    except WireError as error:
        return None, error
