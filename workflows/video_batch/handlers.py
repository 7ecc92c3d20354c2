"""Handlers of the video batch. The encoder is a small fake."""

from __future__ import annotations

from typing import Any

from tasker.errors import BusinessLogicError
from tasker.step_handler import depends_on, inputs, step_handler

Result = dict[str, Any]
MEGABYTES_PER_SECOND = {144: 0.02, 720: 0.3, 1080: 0.6, 2160: 2.5}


@step_handler("video.list_videos")
@inputs("catalog")
def list_videos(catalog: str) -> Result:
    """Return the videos of the catalog; one file of it is broken."""
    videos = [{"id": f"{catalog}-{number:02}", "seconds": 30 * number} for number in range(1, 12)]
    return {"videos": [*videos, {"id": f"{catalog}-broken", "seconds": 60}]}


@step_handler("video.probe")
@inputs("video_id")
def probe(video_id: str) -> Result:
    if video_id.endswith("broken"):
        raise BusinessLogicError(f"{video_id} has no video stream", error_code="no_video_stream")
    return {"codec": "h264"}


@step_handler("video.encode")
@inputs("seconds", "height")
def encode(seconds: int, height: int) -> Result:
    rate = next(rate for most, rate in MEGABYTES_PER_SECOND.items() if height <= most)
    return {"megabytes": round(seconds * rate, 1)}


@step_handler("video.publish")
@inputs("video_id", "height")
def publish(video_id: str, height: int) -> Result:
    return {"url": f"https://videos.example/{video_id}/{height}.mp4"}


@step_handler("video.report")
@depends_on(videos="videos")
def report(videos: Result) -> Result:
    encoded = [each for each in videos["results"] if each is not None]
    return {
        "encoded": len(encoded),
        "failed": len(videos["failed"]),
        "megabytes": round(sum(each["megabytes"] for each in encoded), 1),
    }
