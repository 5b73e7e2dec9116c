//! Replies: values to bytes.

use braid_block::Errno;

use super::{MAJOR, MAX_DATA, MINOR, OUT_HEADER};

/// The header in front of the data of a READ: the reply to `unique` with `len` bytes of data, of
/// which there are at most [`MAX_DATA`].
pub fn data_header(unique: u64, len: usize) -> [u8; OUT_HEADER] {
    debug_assert!(len <= MAX_DATA);
    out_header(OUT_HEADER + len, 0, unique)
}

fn out_header(len: usize, error: i32, unique: u64) -> [u8; OUT_HEADER] {
    let mut bytes = [0; OUT_HEADER];
    bytes[..4].copy_from_slice(&(len as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&error.to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// A reply without bulk data. The longest, a directory of three entries, has 112 bytes behind
/// its header, so it needs nothing from the heap.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    bytes: [u8; Reply::MOST],
    len: usize,
}

/// Attributes of a node (`struct fuse_attr`). Owner and times are 0: root, and 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Number of the node.
    pub node: u64,
    /// Size in bytes.
    pub size: u64,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Names.
    pub links: u32,
    /// Preferred size of an access in bytes.
    pub block_size: u32,
}

/// The parameters in the answer to INIT (`struct fuse_init_out`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitReply {
    /// Read-ahead in bytes.
    pub max_readahead: u32,
    /// Constants of [`super::init`].
    pub flags: u32,
    /// Its constant for the second word of flags.
    pub flags2: u32,
    /// Asynchronous requests that the kernel sends before it waits for answers.
    pub max_background: u16,
    /// Asynchronous requests at which the kernel holds back what can wait.
    pub congestion_threshold: u16,
    /// Most bytes in a WRITE.
    pub max_write: u32,
    /// Most pages in a request.
    pub max_pages: u16,
}

/// Size of a file system (`struct fuse_kstatfs`): full, with one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemSize {
    /// Blocks in all.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_size: u32,
}

/// One line of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Number of the node.
    pub node: u64,
    /// Position of the next listing.
    pub next: u64,
    /// Type, the upper four bits of `st_mode`.
    pub kind: u32,
    /// Its name, at most 16 bytes.
    pub name: &'a str,
}

/// Time for which the kernel may keep names and attributes, in seconds. They never change.
const VALID_S: u64 = 86_400;

impl Reply {
    const MOST: usize = 160;

    /// Success, and nothing to tell.
    pub fn ok(unique: u64) -> Reply {
        Reply::new(unique, 0).finish()
    }

    /// Failure.
    pub fn error(unique: u64, errno: Errno) -> Reply {
        Reply::new(unique, -errno.raw()).finish()
    }

    /// `struct fuse_init_out`, 64 bytes.
    pub fn init(unique: u64, init: &InitReply) -> Reply {
        Reply::new(unique, 0)
            .u32(MAJOR)
            .u32(MINOR)
            .u32(init.max_readahead)
            .u32(init.flags)
            .u16(init.max_background)
            .u16(init.congestion_threshold)
            .u32(init.max_write)
            // Granularity of times: 1 ns.
            .u32(1)
            .u16(init.max_pages)
            // map_alignment.
            .zeroes(2)
            .u32(init.flags2)
            // unused[7].
            .zeroes(28)
            .finish()
    }

    /// `struct fuse_init_out` to a kernel of a later major version, which asks again with this.
    pub fn other_major(unique: u64) -> Reply {
        Reply::new(unique, 0).u32(MAJOR).u32(MINOR).zeroes(56).finish()
    }

    /// `struct fuse_entry_out`, 128 bytes: the answer to LOOKUP.
    pub fn entry(unique: u64, attributes: &Attributes) -> Reply {
        Reply::new(unique, 0)
            .u64(attributes.node)
            // Generation.
            .u64(0)
            // How long name and attributes are valid, and the nanoseconds of both.
            .u64(VALID_S)
            .u64(VALID_S)
            .zeroes(8)
            .attributes(attributes)
            .finish()
    }

    /// `struct fuse_attr_out`, 104 bytes: the answer to GETATTR.
    pub fn attr(unique: u64, attributes: &Attributes) -> Reply {
        Reply::new(unique, 0).u64(VALID_S).zeroes(8).attributes(attributes).finish()
    }

    /// `struct fuse_open_out`, 16 bytes, with the constants of [`super::open`].
    pub fn open(unique: u64, open_flags: u32) -> Reply {
        // The file handle is 0: the node says all.
        Reply::new(unique, 0).u64(0).u32(open_flags).u32(0).finish()
    }

    /// `struct fuse_write_out`, 8 bytes: `len` bytes were written.
    #[inline]
    pub fn written(unique: u64, len: u32) -> Reply {
        Reply::new(unique, 0).u32(len).u32(0).finish()
    }

    /// `struct fuse_statfs_out`, 80 bytes.
    pub fn statfs(unique: u64, size: &FileSystemSize) -> Reply {
        Reply::new(unique, 0)
            .u64(size.blocks)
            // Free, and available to anybody.
            .zeroes(16)
            // Files, and free ones.
            .u64(1)
            .u64(0)
            .u32(size.block_size)
            // Longest name.
            .u32(255)
            .u32(size.block_size)
            .zeroes(28)
            .finish()
    }

    /// `struct fuse_lseek_out`, 8 bytes.
    pub fn lseek(unique: u64, offset: u64) -> Reply {
        Reply::new(unique, 0).u64(offset).finish()
    }

    /// As many of `entries` as `room` bytes take, each a `struct fuse_dirent` with its name
    /// padded to 8 bytes. None at all is the end of the directory.
    ///
    /// # Panics
    /// If they are more than fit in a reply.
    pub fn directory(unique: u64, entries: &[DirectoryEntry<'_>], room: u32) -> Reply {
        let mut reply = Reply::new(unique, 0);
        for entry in entries {
            let padded = entry.name.len().next_multiple_of(8);
            if reply.len - OUT_HEADER + 24 + padded > room as usize {
                break;
            }
            reply = reply
                .u64(entry.node)
                .u64(entry.next)
                .u32(entry.name.len() as u32)
                .u32(entry.kind)
                .push(entry.name.as_bytes())
                .zeroes(padded - entry.name.len());
        }
        reply.finish()
    }

    /// Returns the bytes for the kernel.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    fn new(unique: u64, error: i32) -> Reply {
        let mut bytes = [0; Reply::MOST];
        bytes[..OUT_HEADER].copy_from_slice(&out_header(0, error, unique));
        Reply { bytes, len: OUT_HEADER }
    }

    /// Writes the length, which is known at last, into the header.
    #[inline]
    fn finish(mut self) -> Reply {
        self.bytes[..4].copy_from_slice(&(self.len as u32).to_ne_bytes());
        self
    }

    /// `struct fuse_attr`, 88 bytes.
    fn attributes(self, attributes: &Attributes) -> Reply {
        self.u64(attributes.node)
            .u64(attributes.size)
            // Units of 512 bytes, whatever the block size.
            .u64(attributes.size / 512)
            // Three times and their nanoseconds.
            .zeroes(36)
            .u32(attributes.mode)
            .u32(attributes.links)
            // Owner, group, device number.
            .zeroes(12)
            .u32(attributes.block_size)
            .u32(0)
    }

    fn u16(self, value: u16) -> Reply {
        self.push(&value.to_ne_bytes())
    }

    #[inline]
    fn u32(self, value: u32) -> Reply {
        self.push(&value.to_ne_bytes())
    }

    fn u64(self, value: u64) -> Reply {
        self.push(&value.to_ne_bytes())
    }

    fn zeroes(mut self, count: usize) -> Reply {
        self.len += count;
        self
    }

    #[inline]
    fn push(mut self, bytes: &[u8]) -> Reply {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reply({:02x?})", self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32-bit words of a reply as a little-endian host reads them.
    fn words(reply: &Reply) -> Vec<u32> {
        let words = reply.as_bytes().chunks_exact(4);
        words.map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    const FILE: Attributes =
        Attributes { node: 2, size: 0x1_0000_2000, mode: 0o100_600, links: 1, block_size: 4096 };
    /// `struct fuse_attr` of `FILE`, in 22 words.
    #[cfg(target_endian = "little")]
    const FILE_WORDS: [u32; 22] =
        [2, 0, 0x2000, 1, 0x80_0010, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0o100_600, 1, 0, 0, 0, 4096, 0];

    #[test]
    fn plain_replies_to_the_byte() {
        assert_eq!(Reply::ok(5).as_bytes(), data_header(5, 0));
        assert_eq!(
            Reply::error(5, Errno::INVAL).as_bytes(),
            [&16u32.to_ne_bytes()[..], &(-22i32).to_ne_bytes(), &5u64.to_ne_bytes()].concat()
        );
        assert_eq!(
            data_header(0x1_0000_0002, 4096),
            [4112u32.to_ne_bytes(), [0; 4], 2u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat()[..]
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn replies_with_arguments_to_the_word() {
        let header = |len: u32| [len, 0, 5, 0];
        let init = InitReply {
            max_readahead: 131_072,
            flags: 0x8021,
            flags2: 0x200,
            max_background: 1024,
            congestion_threshold: 768,
            max_write: 1 << 20,
            max_pages: 256,
        };
        let mut expected = header(80).to_vec();
        expected.extend([7, MINOR, 131_072, 0x8021, 768 << 16 | 1024, 1 << 20, 1, 256, 0x200]);
        expected.extend([0; 7]);
        assert_eq!(words(&Reply::init(5, &init)), expected);

        let mut expected = header(144).to_vec();
        expected.extend([2, 0, 0, 0, 86_400, 0, 86_400, 0, 0, 0]);
        expected.extend(FILE_WORDS);
        assert_eq!(words(&Reply::entry(5, &FILE)), expected);

        let mut expected = header(120).to_vec();
        expected.extend([86_400, 0, 0, 0]);
        expected.extend(FILE_WORDS);
        assert_eq!(words(&Reply::attr(5, &FILE)), expected);

        let size = FileSystemSize { blocks: 1000, block_size: 4096 };
        let mut expected = header(96).to_vec();
        expected.extend([1000, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4096, 255, 4096]);
        expected.extend([0; 7]);
        assert_eq!(words(&Reply::statfs(5, &size)), expected);

        assert_eq!(words(&Reply::open(5, 0x41))[4..], [0, 0, 0x41, 0]);
        assert_eq!(words(&Reply::written(5, 4096)), [24, 0, 5, 0, 4096, 0]);
        assert_eq!(words(&Reply::lseek(5, 1 << 32)), [24, 0, 5, 0, 0, 1]);
        assert_eq!(words(&Reply::other_major(5))[..6], [80, 0, 5, 0, 7, MINOR]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_listing_stops_where_the_room_does() {
        let entries = [
            DirectoryEntry { node: 1, next: 1, kind: 4, name: ".." },
            DirectoryEntry { node: 2, next: 2, kind: 8, name: "volume" },
        ];
        let first = [48, 0, 5, 0, 1, 0, 1, 0, 2, 4, u32::from_le_bytes(*b"..\0\0"), 0];
        assert_eq!(words(&Reply::directory(5, &entries, 63)), first);
        let both = words(&Reply::directory(5, &entries, 64));
        assert_eq!(both[0], 80);
        assert_eq!(both[12..18], [2, 0, 2, 0, 6, 8]);
        assert_eq!(Reply::directory(5, &entries, 31).as_bytes(), Reply::ok(5).as_bytes());
    }
}
