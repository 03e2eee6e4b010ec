"""A differential fuzzer: damaged logs that are made to look healthy, and healthy ones, audited by kaudit and by a reference.

    python -m tests.differential --logs 3000 --seed 1              # the table of damages by place
    python -m tests.differential --case 7 hole "segment end" "partial batch" --keep DIRECTORY

`logs` writes healthy directories, `damages` and `dressings` change them, `reference` says from the bytes before and after what must
be found and which losses no audit can prove, each with the class of Kafka that leaves the same bytes. These import nothing of kaudit.
`cases` asks kaudit. `known.toml` lists what it does not find, with reasons.
"""
