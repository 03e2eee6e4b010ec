import pickle

from kaudit.formats.errors import LimitExceededError, Reason, WireError


def test_errors_survive_the_way_between_processes():
    error = pickle.loads(pickle.dumps(WireError(7, Reason.CRC, "stored 1, computed 2")))
    assert (error.position, error.reason, error.detail) == (7, Reason.CRC, "stored 1, computed 2")
    assert str(error) == "stored 1, computed 2 (at byte 7)"


def test_a_limit_keeps_its_own_fields():
    error = pickle.loads(pickle.dumps(LimitExceededError(3, 100, "too much")))
    assert isinstance(error, WireError)
    assert isinstance(error, LimitExceededError)
    assert (error.position, error.limit, error.reason) == (3, 100, Reason.LIMIT)
