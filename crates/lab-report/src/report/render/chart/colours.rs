//! The colours of charts, and which series has which.
//!
//! Any two of the eight are at least 20 apart in CIELAB, also as seen by readers without red, green
//! or blue (simulated by the matrices of Machado and others, 2009), and each has a contrast on white
//! of about 3 or more. Each has a twin for dark pages in `page.css`, of which the same is true.

use std::fmt;

use crate::report::model::{Chart, Plot, Report};

/// A colour's red, green and blue. It is written as `#RRGGBB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report::render) struct Colour(
    pub(in crate::report::render) u8,
    pub(in crate::report::render) u8,
    pub(in crate::report::render) u8,
);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(red, green, blue) = self;
        write!(f, "#{red:02X}{green:02X}{blue:02X}")
    }
}

/// Texts, intervals, marks.
pub(super) const INK: Colour = Colour(0x1a, 0x1d, 0x21);
/// Ticks and names of axes.
pub(in crate::report::render) const SOFT: Colour = Colour(0x5b, 0x64, 0x70);
/// The grid.
pub(super) const RULE: Colour = Colour(0xdf, 0xe3, 0xe8);
/// The ground under marks with a hole.
pub(super) const PAPER: Colour = Colour(0xff, 0xff, 0xff);

/// Of the series, in order.
pub(super) const SERIES: [Colour; 8] = [
    Colour(0x14, 0x3a, 0xa1),
    Colour(0xcf, 0x8e, 0x1b),
    Colour(0x2c, 0x7c, 0x58),
    Colour(0x89, 0x40, 0x7e),
    Colour(0x46, 0x9d, 0xff),
    Colour(0x7d, 0x21, 0x0e),
    Colour(0x99, 0x91, 0x9f),
    Colour(0x7c, 0x6d, 0x00),
];

/// Gives a subject the same looks in all charts of a report, and other names the same colour as
/// long as the colours last.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    /// Subjects that are drawn, in the order of their table.
    subjects: Vec<String>,
    /// Other series, in the order of the charts.
    others: Vec<String>,
}

impl Palette {
    /// Of a report with its charts.
    pub fn of(report: &Report) -> Self {
        let mut drawn: Vec<&str> = Vec::new();
        for name in report.charts().flat_map(series_of) {
            if !drawn.contains(&name) {
                drawn.push(name);
            }
        }
        let names = report.subjects.rows.iter().filter_map(|row| row.cells.first());
        let subjects: Vec<String> = names
            .map(|cell| cell.text.as_str())
            .filter(|name| drawn.contains(name))
            .map(str::to_owned)
            .collect();
        let is_other = |name: &&str| !subjects.iter().any(|subject| subject == name);
        let others = drawn.into_iter().filter(is_other).map(str::to_owned).collect();
        Self { subjects, others }
    }

    /// A place for each series of one chart, all different: its colour is that of [`series`], the
    /// rest of its looks depends on how often the eight colours have gone round ([`is_light`], markers,
    /// dashes). A subject's place is its own; another name takes the colour after the subjects' that
    /// is its own, or the next that is free in this chart.
    pub(in crate::report::render) fn places(&self, names: &[&str]) -> Vec<usize> {
        let mut places: Vec<Option<usize>> = Vec::new();
        for name in names {
            let own = self.subjects.iter().position(|subject| subject == name);
            places.push(own.filter(|own| !places.contains(&Some(*own))));
        }
        for (index, name) in names.iter().enumerate() {
            if places[index].is_some() {
                continue;
            }
            let known = self.others.iter().position(|other| other == name);
            let wanted = known.map_or(index, |known| self.subjects.len() + known) % SERIES.len();
            // After all eight are taken, the second round starts.
            let rounds = (0..).map(|round| round * SERIES.len());
            let free = rounds
                .flat_map(|round| (0..SERIES.len()).map(move |step| (round, step)))
                .map(|(round, step)| round + (wanted + step) % SERIES.len())
                .find(|place| !places.contains(&Some(*place)));
            places[index] = Some(free.unwrap_or(wanted));
        }
        places.into_iter().flatten().collect()
    }
}

fn series_of(chart: &Chart) -> Vec<&str> {
    match &chart.plot {
        Plot::Bars { series, .. } => series.iter().map(|series| series.name.as_str()).collect(),
        Plot::Lines { series, .. } => series.iter().map(|series| series.name.as_str()).collect(),
    }
}

/// The colour at a place that [`Palette::places`] gave.
pub(in crate::report::render) fn series(place: usize) -> Colour {
    SERIES[place % SERIES.len()]
}

/// Whether bars at a place are light with a line around them, as every second round is.
pub(in crate::report::render) fn is_light(place: usize) -> bool {
    place / SERIES.len() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of red, green and blue for an eye without one of them (Machado, Oliveira and
    /// Fernandes 2009, severity 1), and for one that has all.
    const EYES: [(&str, [[f64; 3]; 3]); 4] = [
        ("all", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "no red",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "no green",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "no blue",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn linear(Colour(red, green, blue): Colour) -> [f64; 3] {
        [red, green, blue].map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: &[[f64; 3]; 3], [a, b, c]: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row[0] * a + row[1] * b + row[2] * c)
    }

    /// CIELAB under daylight (D65).
    fn lab(linear: [f64; 3]) -> [f64; 3] {
        const TO_XYZ: [[f64; 3]; 3] = [
            [0.412_456, 0.357_576, 0.180_438],
            [0.212_673, 0.715_152, 0.072_175],
            [0.019_334, 0.119_192, 0.950_304],
        ];
        let [x, y, z] = times(&TO_XYZ, linear.map(|part| part.clamp(0.0, 1.0)));
        let root = |t: f64| {
            if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 }
        };
        let (x, y, z) = (root(x / 0.95047), root(y), root(z / 1.08883));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn contrast(a: Colour, b: Colour) -> f64 {
        let light = |colour| {
            let [red, green, blue] = linear(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        (light(a) / light(b)).max(light(b) / light(a))
    }

    /// The twin of a colour in the page's style.
    fn dark(colour: Colour) -> Colour {
        let style = include_str!("../page.css");
        let rule = format!(".chart [fill=\"{}\"] {{ fill: #", colour);
        let (_, after) = style.split_once(&rule).unwrap();
        let part = |from: usize| u8::from_str_radix(&after[from..from + 2], 16).unwrap();
        Colour(part(0), part(2), part(4))
    }

    #[test]
    fn every_eye_tells_the_colours_apart() {
        for (page, colours, paper, enough) in
            [("light", SERIES, PAPER, 2.7), ("dark", SERIES.map(dark), dark(PAPER), 4.5)]
        {
            for (index, colour) in colours.iter().enumerate() {
                let ratio = contrast(*colour, paper);
                assert!(ratio > enough, "{page}: {} has a contrast of {ratio}", colour);
                for other in &colours[..index] {
                    for (eye, matrix) in EYES {
                        let [a, b] = [*colour, *other].map(|c| lab(times(&matrix, linear(c))));
                        let apart = (0..3).map(|n| (a[n] - b[n]).powi(2)).sum::<f64>().sqrt();
                        let pair = format!("{} and {}", colour, other);
                        assert!(apart >= 20.0, "{page}, {eye}: {pair} are {apart} apart");
                    }
                }
            }
        }
    }
}
