"""The file of what was measured, which another process or user may have spoiled. No GPU and no torch are needed."""

import os
import pathlib
import tempfile
import tracemalloc
import unittest

from origami_gemm._kept import MOST_BYTES, Kept


class Files(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.file = self.folder / "verified.json"

    def test_ratios_stay(self):
        Kept(self.folder / "new").put("a", 1.25)
        Kept(self.folder / "new").put("b", 0.5)
        self.assertEqual((Kept(self.folder / "new").get("a"), Kept(self.folder / "new").get("b")), (1.25, 0.5))
        self.assertEqual(os.listdir(self.folder / "new"), ["verified.json"])

    def test_spoiled_files(self):
        for text in ("", "[" * 1_000_000, '{"a": "1.5"}', '{"a": 1e999}', '{"a": NaN}', '{"a": -1.0}', "[1.5]", "\x00",
                     '{"a": 1.5' + " " * MOST_BYTES + "}"):
            with self.subTest(text[:20]):
                self.file.write_text(text)
                self.assertIsNone(Kept(self.folder).get("a"))
                Kept(self.folder).put("b", 2.0)
                self.assertEqual(Kept(self.folder).get("b"), 2.0)

    def test_what_others_may_write_is_not_read(self):
        Kept(self.folder).put("a", 1.5)
        self.file.chmod(0o666)
        self.assertIsNone(Kept(self.folder).get("a"))
        Kept(self.folder).put("b", 2.0)
        self.assertEqual((self.file.stat().st_mode & 0o777, Kept(self.folder).get("b")), (0o600, 2.0))

    def test_a_large_file_is_not_read_whole(self):
        with open(self.file, "w") as file:
            file.truncate(1 << 40)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertIsNone(Kept(self.folder).get("a"))
        self.assertLess(tracemalloc.get_traced_memory()[1], 4 * MOST_BYTES)

    def test_nothing_is_written_where_nothing_can_be(self):
        (self.folder / "file").write_text("")
        Kept(self.folder / "file").put("a", 1.5)  # the folder is a file
        self.file.mkdir()
        Kept(self.folder).put("a", 1.5)
        self.assertEqual(sorted(os.listdir(self.folder)), ["file", "verified.json"])


if __name__ == "__main__":
    unittest.main()
