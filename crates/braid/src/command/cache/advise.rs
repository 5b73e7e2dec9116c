//! `braid cache advise`: asks a volume for the curves of its caches, and shows what they say.

use std::io::IsTerminal;

use braid_lab_report::report::render::render_html;

use super::advice::Advice;
use super::show;
use crate::cli;
use crate::command::page::write_new;
use braid_service::control::{self, CacheCurve, OUTPUT_VERSION};
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};

pub(super) fn advise(options: &cli::CacheAdvise) -> Result<(), Failure> {
    let name = &options.name;
    let curves = curves_of(name)?;
    let advices: Vec<Advice> = curves.iter().map(Advice::of).collect();
    if options.json {
        let caches: Vec<_> = advices.iter().map(show::json).collect();
        let json = serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "volume": name,
            "caches": caches,
        });
        println!("{json}");
        return Ok(());
    }
    if let Some(file) = &options.html {
        let page = render_html(&show::report(name, &advices)).context("cannot draw the page")?;
        return write_new(file, &page);
    }
    let is_coloured = std::io::stdout().is_terminal();
    print_coloured!("{}", show::text(name, &advices, is_coloured));
    Ok(())
}

pub(super) fn curves_of(name: &str) -> Result<Vec<CacheCurve>, Failure> {
    check_name(name)?;
    let socket = Places::from_environment().control(name);
    let curves = control::get_curves(&socket).map_err(|error| error.failure(name))?;
    let Some(curves) = curves else {
        let text = format!("{name}: the shard of its caches does not answer");
        return Err(Failure::failed(text).next(format!("`braid status {name}` says why")));
    };
    if curves.is_empty() {
        let next = "`braid up 'cache(size=1G, DEVICE)'` puts a cache in front of a device";
        return Err(Failure::failed(format!("{name} has no cache")).next(next));
    }
    Ok(curves)
}
