"""The bugs that can be provoked, by id."""

from tests.bugs.recipe import Recipe
from tests.bugs.recipes import (
    cleaner,
    fail_over,
    go_clients,
    java_clients,
    late_writes,
    migration,
    old_coordinators,
    side_files,
)

RECIPES = {
    recipe.bug: recipe
    for recipe in (
        Recipe("KAFKA-5431", "broker", "0.11.0.0", "0.11.0.2", cleaner.preallocated),
        Recipe("KAFKA-6119", "broker", "0.11.0.0", "0.11.0.2", late_writes.after_timeout),
        Recipe("KAFKA-6361", "broker", "1.1.0", "2.1.1", fail_over.a_leader_between),
        Recipe("KAFKA-6683", "broker", "1.0.0", "1.1.0", side_files.snapshot_of_a_roll),
        Recipe("KAFKA-7467", "broker", "1.1.0", "2.1.1", cleaner.empty_marker),
        Recipe("KAFKA-7866", "broker", "2.1.1", "2.2.2", side_files.transaction_index_unwritable),
        Recipe("KAFKA-8351", "broker", "2.1.1", "2.2.2", cleaner.in_another_segment),
        Recipe("KAFKA-8483", "java", "2.2.2", "2.3.1", java_clients.reordered_after_unknown_producer),
        Recipe("KAFKA-9144", "broker", "2.3.1", "2.6.3", old_coordinators.marker_after_expiry),
        Recipe("KAFKA-12671", "broker", "2.8.2", "3.7.2", late_writes.after_abort),
        Recipe("KAFKA-14034", "java", "4.4.0", "2.4.0", java_clients.resent_under_the_next_epoch),
        Recipe("KAFKA-14055", "broker", "2.8.2", "3.0.2", cleaner.key_of_a_marker),
        Recipe("KAFKA-15552", "broker", "3.5.1", "3.5.2", migration.producer_ids_of_zookeeper),
        Recipe("KAFKA-17754", "broker", "2.8.2", "4.1.0", java_clients.delayed_end_of_a_transaction),
        Recipe("KAFKA-20785", "broker", "4.1.2", None, java_clients.commit_after_the_timeout),
        Recipe("KAFKA-13727", "broker", "2.7.2", "2.8.2", cleaner.in_part_of_a_segment),
        Recipe("sarama-2178", "sarama", "1.32.0", "1.33.0", go_clients.spent_epochs, fixed_log_differs=False),
    )
}
