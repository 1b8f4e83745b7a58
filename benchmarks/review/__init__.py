"""What reaches the user of a code review, whatever models say: planted faults and clean diffs."""
