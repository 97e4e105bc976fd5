"""Small PDFs, written by hand: `pdf("Page one.", "Page two.")`."""

from __future__ import annotations


def pdf(*pages: str) -> bytes:
    """A PDF with a page for each text (Latin letters only)."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        place = "/Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page {place} /Contents {5 + 2 * number} 0 R >>")
        said = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        drawn = f"BT /F1 12 Tf 72 720 Td ({said}) Tj ET" if text else ""
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    data, places = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def encrypted(*pages: str) -> bytes:
    """The same, which only who knows a password can read."""
    import io

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(*pages))))
    writer.encrypt("secret", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()
