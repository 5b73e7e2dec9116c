//! An SVG as PNG, drawn by resvg with the system's fonts.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::error::LabError;

/// Pixels of the PNG for each pixel of the picture's natural size.
const SCALE: f32 = 2.0;
/// Taken if they are there, in this order; else whatever the system has.
const PREFERRED: [&str; 5] = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arimo", "Open Sans"];

/// Draws a picture that stands alone (see [`Frame::Alone`](super::chart::Frame)) on white.
///
/// # Errors
///
/// When the system has no font, because a chart without texts says nothing; when the SVG is not
/// one or too large.
pub fn render_png(svg: &str) -> Result<Vec<u8>, LabError> {
    render_png_with(svg, system_fonts())
}

fn render_png_with(svg: &str, fonts: &Arc<fontdb::Database>) -> Result<Vec<u8>, LabError> {
    if fonts.is_empty() {
        return Err(failed("no font was found; install one (Debian package fonts-dejavu-core)"));
    }
    let options = Options { fontdb: Arc::clone(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error.to_string()))?;
    let size = tree.size();
    let (width, height) = (size.width() * SCALE, size.height() * SCALE);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| failed("it is too large"))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error.to_string()))
}

fn failed(reason: &str) -> LabError {
    LabError::Serialise { what: "a chart as PNG", reason: reason.to_owned() }
}

/// The fonts of the system, looked for once.
fn system_fonts() -> &'static Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_system_fonts();
        if let Some(family) = family(&fonts) {
            fonts.set_sans_serif_family(family);
        }
        Arc::new(fonts)
    })
}

fn family(fonts: &fontdb::Database) -> Option<String> {
    let has = |name: &str| {
        fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name))
    };
    let preferred = PREFERRED.into_iter().find(|name| has(name)).map(str::to_owned);
    let any = || fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
    preferred.or_else(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_font_the_package_is_named() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>";
        let none = Arc::new(fontdb::Database::new());
        let error = render_png_with(svg, &none).unwrap_err().to_string();
        assert!(error.contains("fonts-dejavu-core"), "{error}");
    }

    #[test]
    fn what_is_not_a_picture_is_refused() {
        if system_fonts().is_empty() {
            println!("skipped: no font on this system");
            return;
        }
        assert!(render_png("<svg").is_err());
        assert!(render_png("").is_err());
    }
}
