"""The lake: finished segments of the log as Parquet files, in order of topic and time, with a manifest.

docs/guides/lake.md.
Knows no broker: it reads the files of a data directory, with the broker on or off, and writes to a folder."""


def files(place: str, stream: str | None = None) -> list[str]:
    """The current files of a lake, for any Parquet reader; together they have every record once.

    Paths, or for an object store URIs: s3://bucket/lake/...

    place: a folder or a URI; stream: only of this stream. raises: RumqError if the lake cannot be read"""
    from rumq.lake.folder import folder_at
    from rumq.lake.manifest import LakeManifest

    folder = folder_at(place)
    found = sorted(LakeManifest(folder).readable().files(), key=lambda file: file.path)
    return [folder.name(file.path) for file in found if stream in (None, file.partition.partition("/")[0])]


__all__ = ["files"]
