//! Tables of counters: each counter has one row with its field, its label in `show stats`, and the
//! metric that exports it, if any.

/// One row of a table of counters.
#[derive(Debug)]
pub struct Counter<T> {
    /// Label in `show stats`.
    pub label: &'static str,
    /// Name and help text of the metric. Rows with the same metric are summed.
    pub metric: Option<(&'static str, &'static str)>,
    /// Reads the counter.
    pub value: fn(&T) -> u64,
}

impl<T> Counter<T> {
    /// Distinct metrics of a table, with their help texts, in the order of the table.
    pub fn metrics(table: &[Counter<T>]) -> Vec<(&'static str, &'static str)> {
        let mut all = Vec::new();
        for metric in table.iter().filter_map(|counter| counter.metric) {
            if !all.iter().any(|(name, _)| *name == metric.0) {
                all.push(metric);
            }
        }
        all
    }

    /// Value of a metric of a table: the sum of its rows.
    pub fn metric_of(table: &[Counter<T>], name: &str, counters: &T) -> u64 {
        let rows = table.iter().filter(|counter| counter.metric.is_some_and(|metric| metric.0 == name));
        rows.map(|counter| (counter.value)(counters)).sum()
    }
}

/// Defines a struct of counters from its rows, with `add` and the table `TABLE`. After the rows, an
/// array may follow with one counter for each value of an enum, which has `ALL` and `label`.
macro_rules! counters {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$doc:meta])* $field:ident = $label:literal $(, $metric:literal $help:literal)?;)*
    } $(, $(#[$array_doc:meta])* $array:ident: $kind:ident)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
            $($(#[$array_doc])* pub $array: [u64; $kind::ALL.len()],)?
        }

        impl $name {
            /// All counters, in the order in which they are shown.
            pub const TABLE: &[$crate::counters::Counter<$name>] = &[$($crate::counters::Counter {
                label: $label,
                metric: $crate::counters::counters!(@metric $($metric $help)?),
                value: |counters| counters.$field,
            },)*];

            /// Adds the counters of another source.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
                $(self.$array.iter_mut().zip(other.$array).for_each(|(sum, one)| *sum += one);)?
            }

            /// Labels and values, in the order in which they are shown.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                let rows = $name::TABLE.iter().map(|counter| (counter.label, (counter.value)(self)));
                $(let rows = rows.chain($kind::ALL.iter().map(|one| one.label()).zip(self.$array));)?
                rows
            }
        }
    };
    (@metric) => { None };
    (@metric $metric:literal $help:literal) => { Some(($metric, $help)) };
}

pub(crate) use counters;

#[cfg(test)]
mod tests {
    use super::Counter;

    counters! {
        /// Counters of a test.
        pub struct Three {
            /// First.
            a = "a", "sum" "The sum";
            /// Second.
            b = "b";
            /// Third.
            c = "c", "sum" "The sum";
        }
    }

    #[test]
    fn rows_with_one_metric_are_summed() {
        let mut three = Three { a: 1, b: 2, c: 4 };
        three.add(&Three { a: 10, b: 20, c: 40 });
        assert_eq!(three.rows().collect::<Vec<_>>(), [("a", 11), ("b", 22), ("c", 44)]);
        assert_eq!(Counter::metrics(Three::TABLE), [("sum", "The sum")]);
        assert_eq!(Counter::metric_of(Three::TABLE, "sum", &three), 55);
    }
}
