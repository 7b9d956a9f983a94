import sys

from origami_gemm_plugin import serve_executor

if sys.argv[1:2] == ["table"]:
    try:
        from origami_triton import table
    except ImportError as error:
        raise SystemExit(f"origami-plugin-triton table: {error}; install triton for this python3") from error
    table.main(sys.argv[2:])
else:
    from origami_triton import Provider

    serve_executor(Provider())
