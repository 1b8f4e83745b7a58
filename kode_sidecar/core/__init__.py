"""Values, the wire, the loop: no IO."""
