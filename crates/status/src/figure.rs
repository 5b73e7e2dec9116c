//! A number, and the macro by which a struct declares its numbers.

/// Behaviour of a number from one reading to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It goes up, from 0 when the volume was brought up.
    Counter,
}

/// A value. Whole numbers keep all digits, also above 2^53.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, or bytes.
    Whole(u64),
    /// A share, or seconds.
    Real(f64),
}

/// A number of a status, as its field declares it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name of the metric, or its end, where several kinds of thing have the number.
    pub metric: &'static str,
    /// The field's documentation.
    pub help: &'static str,
    /// Its behaviour from one reading to the next.
    pub kind: Kind,
    /// In bytes, seconds, or without a unit.
    pub value: Value,
}

/// A struct that has numbers.
pub trait Figures {
    /// Calls `put` with each number of the struct.
    fn each(&self, put: &mut dyn FnMut(Figure));
}

/// The type of a field that is a number.
pub trait Measure {
    /// The number, if there is one now.
    fn measure(&self) -> Option<Value>;
}

impl Measure for u64 {
    fn measure(&self) -> Option<Value> {
        Some(Value::Whole(*self))
    }
}

impl Measure for u32 {
    fn measure(&self) -> Option<Value> {
        Some(Value::Whole(u64::from(*self)))
    }
}

impl Measure for usize {
    fn measure(&self) -> Option<Value> {
        Some(Value::Whole(*self as u64))
    }
}

impl Measure for f64 {
    fn measure(&self) -> Option<Value> {
        Some(Value::Real(*self))
    }
}

impl Measure for bool {
    fn measure(&self) -> Option<Value> {
        Some(Value::Whole(u64::from(*self)))
    }
}

impl<T: Measure> Measure for Option<T> {
    fn measure(&self) -> Option<Value> {
        self.as_ref().and_then(Measure::measure)
    }
}

/// `value` in seconds, if the field called `field` has a unit of time.
#[doc(hidden)]
pub fn in_base_units(field: &str, value: Value) -> Value {
    let units = [("_ns", 1e9), ("_us", 1e6), ("_ms", 1e3)];
    match (units.iter().find(|(unit, _)| field.ends_with(unit)), value) {
        (Some((_, parts)), Value::Whole(value)) => Value::Real(value as f64 / parts),
        (_, value) => value,
    }
}

/// Declares a struct of a status. `= Counter "NAME"` or `= Gauge "NAME"` behind a field makes it a metric, whose HELP is
/// the field's documentation.
#[macro_export]
macro_rules! figures {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[serde($($serde:tt)*)])?
                pub $field:ident: $type:ty $(= $kind:ident $metric:literal)?,
            )*
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[doc = $doc])+
                $(#[serde($($serde)*)])?
                pub $field: $type,
            )*
        }

        impl $crate::Figures for $name {
            fn each(&self, put: &mut dyn FnMut($crate::Figure)) {
                $($crate::figure!(self.$field, $field, put, [$($doc)+] $($kind $metric)?);)*
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! figure {
    ($value:expr, $field:ident, $put:ident, [$($doc:literal)+]) => {};
    ($value:expr, $field:ident, $put:ident, [$($doc:literal)+] $kind:ident $metric:literal) => {
        if let Some(value) = $crate::Measure::measure(&$value) {
            $put($crate::Figure {
                metric: $metric,
                help: concat!($($doc),+).trim_ascii(),
                kind: $crate::Kind::$kind,
                value: $crate::in_base_units(stringify!($field), value),
            });
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    figures! {
        /// Some numbers, and what is none.
        #[derive(Default)]
        #[expect(unreachable_pub, reason = "the macro is for what others use")]
        pub struct Numbers {
            /// Requests,
            /// of all kinds.
            pub requests: u64 = Counter "requests_total",
            /// Name of the client.
            pub client: String,
            /// Time that they took.
            pub took_us: Option<u64> = Counter "seconds_total",
            /// True if it is full.
            pub full: bool = Gauge "full",
        }
    }

    fn told(of: &Numbers) -> Vec<(&'static str, &'static str, Kind, Value)> {
        let mut told = Vec::new();
        of.each(&mut |one| told.push((one.metric, one.help, one.kind, one.value)));
        told
    }

    #[test]
    fn a_field_is_a_metric_by_its_documentation_and_in_base_units() {
        let mut of = Numbers { requests: u64::MAX, client: "me".to_owned(), ..Numbers::default() };
        let requests =
            ("requests_total", "Requests, of all kinds.", Kind::Counter, Value::Whole(u64::MAX));
        let full = |is| ("full", "True if it is full.", Kind::Gauge, Value::Whole(is));
        assert_eq!(told(&of), [requests, full(0)], "{}", of.client);
        (of.took_us, of.full) = (Some(1_500_000), true);
        let took = ("seconds_total", "Time that they took.", Kind::Counter, Value::Real(1.5));
        assert_eq!(told(&of), [requests, took, full(1)]);
    }
}
