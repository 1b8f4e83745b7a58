"""Pure text: lines, edits, matching, patches, positions, URIs. No IO."""
