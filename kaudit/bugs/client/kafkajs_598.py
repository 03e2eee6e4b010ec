"""kafkajs reads a sequence for a batch before the one before it has been counted."""

from collections.abc import Mapping

from kaudit.bugs.bug import Affected, Bug, Case, Program, Trait, codes
from kaudit.model.finding import Confidence


def _one_too_many(case: Case) -> bool:
    joints = case.value("joints")
    if not isinstance(joints, list | tuple) or not joints:
        return False
    steps = [(joint.get("step"), joint.get("records")) for joint in joints if isinstance(joint, Mapping)]
    return all(isinstance(step, int) and isinstance(records, int) and step == records + 1 for step, records in steps)


BUG = Bug(
    id="kafkajs-598",
    title="KafkaJSProtocolError: The broker received an out of order sequence number",
    summary="batches that are sent at the same time get sequences that do not follow one another",
    program=Program.KAFKAJS,
    affected=(Affected("1.5.0", "1.16.0"),),
    fixed_in=("2.0.0",),
    fix="#1050 and #1172",
    codes=codes("KA107"),
    traits=(
        Trait("a client goes on one sequence too high after each batch", _one_too_many),
        Trait("it writes without transactions", lambda case: case.value("offending", "is_transactional") is False),
    ),
    confidence=Confidence.POSSIBLE,
    sources=("https://github.com/tulios/kafkajs/issues/598", "https://github.com/tulios/kafkajs/pull/1172"),
    module=__name__,
)
