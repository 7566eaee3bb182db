//! Results and views as versioned values.
