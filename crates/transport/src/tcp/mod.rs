//! TCP in stream positions.
