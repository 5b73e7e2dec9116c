//! Loop devices and mounts, for root. They go when they are dropped, the mount first.

use std::path::{Path, PathBuf};

use super::tool::Tool;

/// A loop device.
pub(crate) struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// On `file`; none, saying why, where there are no loop devices.
    pub(crate) fn attach(file: &Path) -> Option<LoopDevice> {
        LoopDevice::made(Tool::new("losetup").args(["--find", "--show"]).arg(file))
    }

    /// The same, past the page cache.
    pub(crate) fn direct(file: &Path) -> Option<LoopDevice> {
        let options = ["--find", "--show", "--direct-io=on"];
        LoopDevice::made(Tool::new("losetup").args(options).arg(file))
    }

    fn made(losetup: Tool) -> Option<LoopDevice> {
        let output = losetup.run();
        if output.status.success() {
            return Some(LoopDevice { path: output.out.trim().into() });
        }
        println!("skipped: no loop device is to be had: {}", output.err.trim());
        None
    }

    /// Now. Its number may be another's from then on, so that only this may be its end.
    #[track_caller]
    pub(crate) fn detach(self) {
        self.losetup_detach().run().ok();
        std::mem::forget(self);
    }

    fn losetup_detach(&self) -> Tool {
        Tool::new("losetup").arg("--detach").arg(&self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        self.path.to_str().expect("loop devices have plain names")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = self.losetup_detach().run();
    }
}

/// A mounted file system.
pub(crate) struct Mounted {
    point: PathBuf,
}

impl Mounted {
    /// Mounts `device` at `point`, which is made.
    #[track_caller]
    pub(crate) fn device(device: &Path, point: &Path) -> Mounted {
        Mounted::mount(Tool::new("mount").arg(device), point)
            .unwrap_or_else(|error| panic!("mount {}: {error}", device.display()))
    }

    /// A file system in memory of `size` bytes; none, saying why, where mounting is forbidden.
    pub(crate) fn tmpfs(point: &Path, size: u64) -> Option<Mounted> {
        let options = format!("size={size}");
        let tool = Tool::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
        Mounted::mount(tool, point)
            .inspect_err(|error| println!("skipped: tmpfs cannot be mounted: {error}"))
            .ok()
    }

    fn mount(tool: Tool, point: &Path) -> Result<Mounted, String> {
        std::fs::create_dir_all(point).map_err(|error| error.to_string())?;
        let output = tool.arg(point).run();
        match output.status.success() {
            true => Ok(Mounted { point: point.to_owned() }),
            false => Err(output.err.trim().to_owned()),
        }
    }

    /// Changes the size of a file system in memory.
    #[track_caller]
    pub(crate) fn resize(&self, size: u64) {
        let options = format!("remount,size={size}");
        Tool::new("mount").args(["-o", &options]).arg(&self.point).run().ok();
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// Unmounts it, which must work.
    #[track_caller]
    pub(crate) fn unmount(self) {
        Tool::new("umount").arg(&self.point).run().ok();
        std::mem::forget(self);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let peaceful = Tool::new("umount").arg(&self.point).run();
        if !peaceful.status.success() {
            let _ = Tool::new("umount").arg("--lazy").arg(&self.point).run();
        }
    }
}
