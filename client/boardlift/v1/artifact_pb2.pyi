from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ArtifactRef(_message.Message):
    __slots__ = ("sha256", "size_bytes", "media_type")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    size_bytes: int
    media_type: str
    def __init__(self, sha256: _Optional[str] = ..., size_bytes: _Optional[int] = ..., media_type: _Optional[str] = ...) -> None: ...

class UploadArtifactRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: UploadHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[UploadHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class UploadHeader(_message.Message):
    __slots__ = ("artifact", "write_offset")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    WRITE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    artifact: ArtifactRef
    write_offset: int
    def __init__(self, artifact: _Optional[_Union[ArtifactRef, _Mapping]] = ..., write_offset: _Optional[int] = ...) -> None: ...

class UploadArtifactResponse(_message.Message):
    __slots__ = ("artifact", "already_stored")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    ALREADY_STORED_FIELD_NUMBER: _ClassVar[int]
    artifact: ArtifactRef
    already_stored: bool
    def __init__(self, artifact: _Optional[_Union[ArtifactRef, _Mapping]] = ..., already_stored: bool = ...) -> None: ...

class GetUploadStatusRequest(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    def __init__(self, sha256: _Optional[str] = ...) -> None: ...

class GetUploadStatusResponse(_message.Message):
    __slots__ = ("committed_size_bytes", "complete")
    COMMITTED_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    committed_size_bytes: int
    complete: bool
    def __init__(self, committed_size_bytes: _Optional[int] = ..., complete: bool = ...) -> None: ...

class DownloadArtifactRequest(_message.Message):
    __slots__ = ("sha256", "read_offset")
    SHA256_FIELD_NUMBER: _ClassVar[int]
    READ_OFFSET_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    read_offset: int
    def __init__(self, sha256: _Optional[str] = ..., read_offset: _Optional[int] = ...) -> None: ...

class DownloadArtifactResponse(_message.Message):
    __slots__ = ("artifact", "chunk")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    artifact: ArtifactRef
    chunk: bytes
    def __init__(self, artifact: _Optional[_Union[ArtifactRef, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class FindMissingArtifactsRequest(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sha256: _Optional[_Iterable[str]] = ...) -> None: ...

class FindMissingArtifactsResponse(_message.Message):
    __slots__ = ("missing_sha256",)
    MISSING_SHA256_FIELD_NUMBER: _ClassVar[int]
    missing_sha256: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, missing_sha256: _Optional[_Iterable[str]] = ...) -> None: ...
