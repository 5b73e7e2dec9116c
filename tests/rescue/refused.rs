//! Bad input for all of `braid rescue`: one clear sentence, and the next command.
