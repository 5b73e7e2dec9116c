//! A RAM volume as a block device, until standard input ends:
//! `ram_volume SIZE_MIB DIRECTORY`, as root. Prints the device's path, and at the end what was
//! served.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use braid_device::Ram;
use braid_engine::Dev;
use braid_export_fuse::{Attachment, Counters, Mount, serve};
use braid_mem::Pool;
use braid_uring::{Config, Executor, Fd};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(size), Some(dir)) = (arguments.next(), arguments.next()) else {
        return Err("usage: ram_volume SIZE_MIB DIRECTORY".into());
    };
    let ram = Ram::new(size.parse::<u64>()? << 20)?;
    let limits = *Dev::new(ram.device()).limits();
    let (mount, fd) = Mount::new(Path::new(&dir), "ram", false)?;
    let counters = Arc::new(Counters::default());
    let shard = std::thread::spawn({
        let counters = Arc::clone(&counters);
        move || -> Result<(), String> {
            let executor = Executor::new(Config::default()).map_err(|error| error.to_string())?;
            let pool = Pool::new(32 << 20).map_err(|error| error.to_string())?;
            let served =
                serve(executor.handle(), Fd::new(fd), Dev::new(ram.device()), pool, counters);
            executor.block_on(served).map_err(|error| error.to_string())
        }
    });
    let mut attachment = Attachment::attach(mount, "ram", &limits)?;
    println!("{}", attachment.device().unwrap_or_default().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    attachment.detach()?;
    shard.join().map_err(|_| "the shard panicked")??;
    eprintln!("{:?}", counters.read());
    Ok(())
}
