mod cached;
mod read;
mod tree;
mod untar;
