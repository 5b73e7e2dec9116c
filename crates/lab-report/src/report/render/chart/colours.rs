//! The colours of charts, and their assignment to series.
//!
//! Any two of the eight are at least 20 apart in CIELAB, also as seen by readers without red, green
//! or blue (simulated by the matrices of Machado and others, 2009), and each has a contrast on white
//! of about 3 or more. Each has a twin for dark pages in `page.css`, of which the same is true.

use crate::report::model::Report;

/// A colour as `#RRGGBB`.
pub(in crate::report::render) type Colour = &'static str;

/// Texts, intervals, marks.
pub(super) const INK: Colour = "#1A1D21";
/// Ticks and names of axes.
pub(in crate::report::render) const SOFT: Colour = "#5B6470";
/// The grid.
pub(super) const RULE: Colour = "#DFE3E8";
/// The background, also inside hollow marks.
pub(super) const PAPER: Colour = "#FFFFFF";

/// The colours of the series, in order.
pub(super) const SERIES: [Colour; 8] =
    ["#143AA1", "#CF8E1B", "#2C7C58", "#89407E", "#469DFF", "#7D210E", "#99919F", "#7C6D00"];

/// Assigns colours to names of series: a name has the same colour in all charts of a report while unused colours last.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    /// The names of series, in the order in which they are drawn.
    names: Vec<String>,
}

impl Palette {
    /// The palette of a report with its charts.
    pub fn of(report: &Report) -> Self {
        let mut names: Vec<String> = Vec::new();
        for series in report.charts().flat_map(|chart| &chart.series) {
            if !names.contains(&series.name) {
                names.push(series.name.clone());
            }
        }
        Self { names }
    }

    /// Returns an index into the colours for each series of a chart: the series' own index unless another series of the
    /// chart has it. The indices differ while unused colours last.
    pub(in crate::report::render) fn places<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        for name in names {
            let own = self.names.iter().position(|known| known == name).unwrap_or(0);
            let mut from_own = (own..own + SERIES.len()).map(|place| place % SERIES.len());
            let free = from_own.find(|place| !places.contains(place));
            places.push(free.unwrap_or(own % SERIES.len()));
        }
        places
    }
}

/// Returns the colour at an index from [`Palette::places`].
pub(in crate::report::render) fn series(place: usize) -> Colour {
    SERIES[place % SERIES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The perception of red, green and blue by an eye without one of them (Machado, Oliveira and Fernandes
    /// 2009, severity 1), and by one that has all.
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

    fn linear(colour: Colour) -> [f64; 3] {
        [1, 3, 5].map(|from| {
            let part = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
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
        let rule = format!(".chart [fill=\"{colour}\"] {{ fill: ");
        let (_, after) = style.split_once(&rule).unwrap();
        &after[..7]
    }

    #[test]
    fn every_eye_tells_the_colours_apart() {
        for (page, colours, paper, enough) in
            [("light", SERIES, PAPER, 2.7), ("dark", SERIES.map(dark), dark(PAPER), 4.5)]
        {
            for (index, colour) in colours.iter().enumerate() {
                let ratio = contrast(colour, paper);
                assert!(ratio > enough, "{page}: {} has a contrast of {ratio}", colour);
                for other in &colours[..index] {
                    for (eye, matrix) in EYES {
                        let [a, b] = [colour, other].map(|c| lab(times(&matrix, linear(c))));
                        let apart = (0..3).map(|n| (a[n] - b[n]).powi(2)).sum::<f64>().sqrt();
                        let pair = format!("{} and {}", colour, other);
                        assert!(apart >= 20.0, "{page}, {eye}: {pair} are {apart} apart");
                    }
                }
            }
        }
    }
}
