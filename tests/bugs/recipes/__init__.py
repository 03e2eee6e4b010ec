"""The bugs that can be provoked, by id."""

from tests.bugs.recipe import Recipe
from tests.bugs.recipes import cleaner, late_writes, old_coordinators, side_files

RECIPES = {
    recipe.bug: recipe
    for recipe in (
        Recipe("KAFKA-6119", "broker", "0.11.0.0", "0.11.0.2", late_writes.after_timeout),
        Recipe("KAFKA-6683", "broker", "1.0.0", "1.1.0", side_files.snapshot_of_a_roll),
        Recipe("KAFKA-7866", "broker", "2.1.1", "2.2.2", side_files.transaction_index_unwritable),
        Recipe("KAFKA-8351", "broker", "2.1.1", "2.2.2", cleaner.in_another_segment),
        Recipe("KAFKA-9144", "broker", "2.3.1", "2.6.3", old_coordinators.marker_after_expiry),
        Recipe("KAFKA-12671", "broker", "2.8.2", "3.7.2", late_writes.after_abort),
        Recipe("KAFKA-13727", "broker", "2.7.2", "2.8.2", cleaner.in_part_of_a_segment),
    )
}
